"""Stories: a question about a few sentences, answered from memory, with a look at every sentence in each hop."""
