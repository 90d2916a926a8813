"""Stories in the live page: its declaration, and the example stories."""
