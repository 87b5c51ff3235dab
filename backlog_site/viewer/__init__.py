"""The web viewer: parse a request, call one function of the domain, render a template."""
