"""What the Vertex AI training API is: its messages, rules, names and states, and a client. No Pulumi, no Docker."""
