import { pushAll } from '../../../objects/lists.ts';
import type { Route, RouteTargetReference } from '../../../objects/types/route.generated.ts';
import { genericStrategy, specChanges } from '../../generic/generic.ts';
import {
  validateImmutableField,
  validateObjectMeta,
  validateObjectMetaUpdate,
  namespacedSubdomain,
} from '../../generic/metadata.ts';
import type { Strategy } from '../../generic/strategy.ts';
import { assignHost, type ReviewAccess, validateHostUpdate } from './custom-host.ts';
import { validateTLS } from './tls.ts';
import { conformsToDNS, validatePathCharacters, validateRouteSpec } from './validation.ts';

const service = 'Service';

/**
 * The rules of Routes, as OpenShift's API server has them (openshift-apiserver `route/apiserver/registry/route`,
 * library-go `route/validation`).
 *
 * @param review for hosts and certificates, and what the account of OpenShift's router may read.
 */
export function routeStrategy(review: ReviewAccess): Strategy<Route> {
  return genericStrategy<Route>({
    ...namespacedSubdomain,
    metadataRules: 'none',
    hasStatus: true,
    allowUnconditionalUpdate: false,
    generationChanges: specChanges,
    setDefaults: setRouteDefaults,
    prepareForUpdate({ spec }, old) {
      // An apply without a host does not remove the generated one.
      if ((spec.host ?? '') === '' && old.spec.host !== undefined) spec.host = old.spec.host;
    },
    validateCreate(route, context) {
      const errors = assignHost(route, review, context);
      pushAll(errors, validatePathCharacters(route.spec));
      pushAll(errors, validateObjectMeta(route.metadata, namespacedSubdomain));
      pushAll(errors, validateRouteSpec(route, true));
      pushAll(errors, validateTLS(route, review, context));
      return errors;
    },
    validateUpdate(route, old, context) {
      const { spec } = route;
      const errors = validateHostUpdate(route, old, review, context);
      pushAll(errors, validateObjectMetaUpdate(route.metadata, old.metadata));
      pushAll(
        errors,
        validateImmutableField(spec.wildcardPolicy, old.spec.wildcardPolicy, 'spec.wildcardPolicy'),
      );
      pushAll(errors, validateObjectMeta(route.metadata, namespacedSubdomain));
      const isHostChecked = spec.host !== old.spec.host && conformsToDNS(old.spec.host ?? '');
      pushAll(errors, validateRouteSpec(route, isHostChecked));
      pushAll(errors, validateTLS(route, review, context));
      if ((spec.path ?? '') !== (old.spec.path ?? '')) pushAll(errors, validatePathCharacters(spec));
      return errors;
    },
    validateStatus: (route, old) => validateObjectMetaUpdate(route.metadata, old.metadata),
    warningsOnCreate: warnings,
    warningsOnUpdate: warnings,
    fields: ({ spec }: Partial<Pick<Route, 'spec'>>) => ({
      'spec.host': spec?.host ?? '',
      'spec.path': spec?.path ?? '',
      'spec.to.name': spec?.to.name ?? '',
    }),
  });
}

/** library-go `route/defaulting`. */
function setRouteDefaults(route: Partial<Pick<Route, 'spec' | 'status'>>): void {
  const spec: Partial<Route['spec']> = (route.spec ??= { to: { kind: '', name: '' } });
  route.status ??= {};
  if ((spec.wildcardPolicy ?? '') === '') spec.wildcardPolicy = 'None';
  spec.to ??= { kind: '', name: '' };
  setTargetDefaults(spec.to);
  spec.alternateBackends?.forEach(setTargetDefaults);
  const { tls } = spec;
  if (tls !== undefined) {
    if (['Edge', 'Reencrypt', 'Passthrough'].includes(tls.termination))
      tls.termination = tls.termination.toLowerCase();
    if (tls.termination === '' && (tls.destinationCACertificate ?? '') === '') tls.termination = 'edge';
  }
  for (const ingress of route.status.ingress ?? []) {
    if ((ingress.wildcardPolicy ?? '') === '') ingress.wildcardPolicy = 'None';
  }
}

function setTargetDefaults(target: RouteTargetReference): void {
  if (target.kind === '') target.kind = service;
  target.weight ??= 100;
}

function warnings({ spec }: Route): string[] {
  const hasBoth = (spec.host ?? '') !== '' && (spec.subdomain ?? '') !== '';
  return hasBoth ? ['spec.host is set; spec.subdomain may be ignored'] : [];
}
