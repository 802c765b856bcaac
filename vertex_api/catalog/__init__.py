"""What Vertex AI training offers, and what it does by default: machines, Reduction Server, output folders."""
