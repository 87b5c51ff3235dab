"""Handle files: folders on disk, content types, frontmatter and links."""
