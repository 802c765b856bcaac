"""`vertex-training doctor`: what a first `pulumi up` in a Google Cloud project would stumble on. It only reads."""
