"""What all resources share: type tokens, the target, the engine, the emulator's process, the Foundation protocol."""

DYNAMIC_TYPE = "pulumi-python:dynamic/vertex-training:"
"""What the type tokens of dynamic resources begin with. Pulumi forces `pulumi-python:dynamic`; components are of
`vertex-training:index`, the only module that a hosted Python component may have."""
