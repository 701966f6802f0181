"""What the labs look like in a notebook: ipywidgets controls around the pictures of the model classes."""
