/** A text that is no YAML; the message is yaml.v2's, beginning with `yaml: `. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError';
}
