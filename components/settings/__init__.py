"""The stack file and its declarations as `Settings`, with every problem reported together; guardrails."""
