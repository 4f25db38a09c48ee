import texts from 'servicenet:reasons';

/** What docs/troubleshooting.md says of a reason word; undefined: nothing. */
export function reasonTextOf(
  reason: string,
): { readonly meaning: string; readonly whatToDo: string } | undefined {
  return Object.hasOwn(texts, reason) ? texts[reason] : undefined;
}
