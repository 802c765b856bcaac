"""What a preview shows at its end, and what a reviewer needs of it: findings of `pulumi preview --json` as Markdown."""
