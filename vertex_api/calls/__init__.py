"""What all calls to the API share: their errors, the pace of submissions, and retries."""
