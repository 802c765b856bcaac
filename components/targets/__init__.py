"""Where training runs: this machine or a Google Cloud project, and the choice between them."""
