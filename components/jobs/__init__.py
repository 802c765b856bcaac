"""CustomJob, HyperparameterTuningJob, TrainingPipeline and Completion: submission, waiting, results, adoption."""
