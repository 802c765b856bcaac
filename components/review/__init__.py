"""What a reviewer needs of `pulumi preview --json`: findings, and their rendering as Markdown or JSON."""
