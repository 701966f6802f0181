"""What ``load.py`` consists of: the ways to load, fresh processes to run them in, and the tables."""
