"""What reproductions of published tables share: the request, cells, figures, pages, missing runs, cost, the result."""
