"""What the live page needs of stories: its declaration, and the stories that it offers."""
