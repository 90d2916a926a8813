"""Pictures: reading, preparing, augmenting and caching them."""
