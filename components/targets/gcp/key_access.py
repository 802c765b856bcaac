"""The right of service agents to use a customer-managed key of Cloud KMS."""

from __future__ import annotations  # loads the provider's types only if they are used

from pulumi import Input, ResourceOptions
from pulumi_gcp import kms

KEY_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def grant_key_use(name: str, key: str, member: Input[str], options: ResourceOptions) -> kms.CryptoKeyIAMMember:
    """Grant a service agent the right to encrypt and decrypt with a customer-managed key."""
    return kms.CryptoKeyIAMMember(name, crypto_key_id=key, role=KEY_USER, member=member, opts=options)
