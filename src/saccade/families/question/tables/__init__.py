"""Questions about pictures of one's own: tables, their readers, task and scores."""
