/**
 * Which controllers run, by `--controllers` (kube-controller-manager's flag): names to switch on, `-name` to switch
 * off, `*` for all that are on by default; without `*` only the named ones run. `-name` beats `name`. The ending
 * `-controller` may be left out.
 *
 * @param choice the flag's items; none: no controller, as in kube-controller-manager.
 * @returns the chosen names, in the order of `known`.
 * @throws {UnknownControllerError} for a name that is not known; the message has those that are.
 */
export function selectControllers(choice: readonly string[], known: readonly KnownController[]): string[] {
  const items = choice.map((item) => item.trim());
  const named = new Set<string>();
  const refused = new Set<string>();
  let all = false;
  for (const item of items) {
    if (item === '*') {
      all = true;
      continue;
    }
    const off = item.startsWith('-');
    const asked = off ? item.slice(1) : item;
    const name = known.find((controller) => [asked, `${asked}-controller`].includes(controller.name))?.name;
    if (name === undefined) {
      const names = known.map((controller) => controller.name).join(', ');
      throw new UnknownControllerError(`"${item}" is not in the list of known controllers: ${names}`);
    }
    (off ? refused : named).add(name);
  }
  return known
    .filter(({ name, onByDefault }) => !refused.has(name) && (named.has(name) || (all && onByDefault)))
    .map(({ name }) => name);
}

/** A name that no controller has. */
export class UnknownControllerError extends Error {
  override readonly name = 'UnknownControllerError';
}

/** A controller that can be chosen. */
export interface KnownController {
  readonly name: string;
  readonly onByDefault: boolean;
}
