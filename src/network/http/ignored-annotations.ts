import type { Ingress } from '../../objects/types/networking.generated.ts';

/** The prefix of ingress-nginx's annotations, which nothing here reads. */
const prefix = 'nginx.ingress.kubernetes.io/';
/** An Event has room for 1,024 characters. */
const maxNames = 10;

/**
 * The Event message about annotations for ingress-nginx, which have no effect here; undefined if there are none.
 * Values that ask for the default behaviour count too.
 */
export function ignoredAnnotations({ metadata }: Pick<Ingress, 'metadata'>): string | undefined {
  const names = Object.keys(metadata.annotations ?? {})
    .filter((name) => name.startsWith(prefix))
    .sort();
  if (names.length === 0) return undefined;
  const shown = names.slice(0, maxNames).join(', ');
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : '';
  return `these annotations have no effect: ${shown}${more}`;
}
