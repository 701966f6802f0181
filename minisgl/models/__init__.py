"""Model code and weight loading: the part of the engine that students write."""
