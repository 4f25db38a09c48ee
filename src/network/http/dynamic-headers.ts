import type { Route } from '../../objects/types/route.generated.ts';
import type { RouteRefusal } from './route-claims.ts';

/**
 * Why a Route is refused for its header actions. HAProxy expands formats in values (`%[req.hdr(Host)]`); this
 * router does not, and a backend would receive the format. `%%` is a percent sign.
 */
export function dynamicHeaderProblem({ spec }: Pick<Route, 'spec'>): RouteRefusal | undefined {
  const { request = [], response = [] } = spec.httpHeaders?.actions ?? {};
  const dynamic = [...request, ...response].find(({ action }) =>
    (action.set?.value ?? '').replaceAll('%%', '').includes('%'),
  );
  if (dynamic === undefined) return undefined;
  const message = `the value for the header ${dynamic.name} is dynamic (%[…]), which this router does not support`;
  return { reason: 'ExtendedValidationFailed', message };
}
