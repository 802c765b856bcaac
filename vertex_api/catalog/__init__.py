"""What Vertex AI training offers: machine types, accelerators, and Reduction Server's image."""
