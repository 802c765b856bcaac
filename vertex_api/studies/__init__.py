"""Studies of hyperparameter tuning jobs: their metrics, and the results of their trials."""
