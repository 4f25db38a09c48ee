/** A number whose spelling matters: `80.0`, `8e1`, an integer that a double cannot hold. */
export class RawNumber {
  readonly literal: string;
  constructor(literal: string) {
    this.literal = literal;
  }
  /** Go reads an integer into an int64 where it fits, and everything else into a float64. */
  get isInteger(): boolean {
    // An int64 has 19 digits; BigInt takes the square of a text's length.
    return (
      /^-?\d{1,19}$/.test(this.literal) && BigInt.asIntN(64, BigInt(this.literal)) === BigInt(this.literal)
    );
  }
  toJSON(): number {
    return Number(this.literal);
  }
}

/** A text that is no JSON; the message is Go's. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

export interface ParsedJson {
  /** Plain JSON, but for {@link RawNumber}. */
  readonly value: unknown;
  /** Objects that repeat a key, with all their members as sent; undefined when no object does. */
  readonly repeated: ReadonlyMap<object, readonly (readonly [key: string, value: unknown])[]> | undefined;
  /** False: the value holds no RawNumber. */
  readonly hasRawNumbers: boolean;
}

/** A text that is no YAML; the message is yaml.v2's, beginning with `yaml: `. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError';
}
