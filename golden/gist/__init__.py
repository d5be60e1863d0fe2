"""Golden model of Gist's encodings (Jain et al., ISCA 2018)."""
