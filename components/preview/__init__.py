"""What a preview shows besides its diff: cost, quota and availability."""
