"""Pictures in: reading, preparing, varying and caching them."""
