"""Replicas as Docker containers: what each is made of (`spec`), what runs them (`executor`), their logs (`logs`)."""
