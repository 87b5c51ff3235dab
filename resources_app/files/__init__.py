"""Files: folders on disk, content types, frontmatter and links."""
