import type { Ingress, IngressClass } from '../../objects/types/networking.generated.ts';

/** `spec.controller` of the IngressClasses that are ours. */
export const ingressController = 'servicenet.dev/router';

/** `spec.controller` of the IngressClasses whose Ingresses OpenShift makes Routes of. */
export const ingressToRouteController = 'openshift.io/ingress-to-route';

/** The way to name a class before Kubernetes 1.18. The field goes before it. */
export const classAnnotation = 'kubernetes.io/ingress.class';

/** Which Ingresses a router serves. */
export interface IngressSelection {
  /** The class that `kubernetes.io/ingress.class` has to name, which needs no IngressClass object. */
  readonly className: string;
  /** Whether Ingresses that name no class are served. */
  readonly withoutClass: boolean;
}

/**
 * Whether an Ingress is ours, as ingress-nginx decides: by the class that it names, which has to exist and to be ours;
 * else by the annotation; else, where it names no class at all, by the router's flag. Where the cluster has a default
 * class, the API server has written it into the Ingress.
 *
 * @param classOf looks an IngressClass up by its name.
 */
export function isServedIngress(
  { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>,
  { className, withoutClass }: IngressSelection,
  classOf: (name: string) => IngressClass | undefined,
): boolean {
  const { ingressClassName = '' } = spec;
  if (ingressClassName !== '') return classOf(ingressClassName)?.spec.controller === ingressController;
  const annotated = metadata.annotations?.[classAnnotation];
  return annotated === undefined ? withoutClass : annotated === className;
}
