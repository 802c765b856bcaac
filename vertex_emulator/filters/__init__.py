"""List filters (AIP-160, which Cloud Logging's query language shares): their parser, and which resources match."""
