/** cel-go's costs of operations (`common/cost.go`). */
export const units = {
  /** Reading a variable, or a member of one. */
  reference: 1,
  call: 1,
  list: 10,
  map: 30,
  struct: 40,
  perCharacter: 0.1,
  perPatternCharacter: 0.25,
} as const;
