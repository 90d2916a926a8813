"""Maps of many methods on the same scenes and their twins, measured side by side."""
