// Empty on purpose. The theme loads a script of this name (1.5 MB) that draws icons as SVG; its
// style sheet draws the same icons from a local font.
