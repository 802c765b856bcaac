"""What a preview says beside its diff: cost, quota and availability."""
