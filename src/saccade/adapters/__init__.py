"""What other libraries are needed for: rows of many pictures in Parquet, and Ray, which makes them on many machines."""
