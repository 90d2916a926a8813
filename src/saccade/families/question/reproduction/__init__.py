"""Tables and figures of Seo et al. (2016) from recorded runs."""
