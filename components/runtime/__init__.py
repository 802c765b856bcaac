"""What all resources share: the target and its client, the engine, the emulator's process, the Foundation protocol."""
