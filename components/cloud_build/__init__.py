"""Cloud Build: requests to build an image, the client, and the wait for a build with its log. No Docker, no Pulumi."""
