import { compareText } from '../../../objects/go-text.ts';
import type { Ingress, IngressSpec } from '../../../objects/types/networking.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { invalid } from '../../validation/field-errors.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { validateObjectMeta, namespacedSubdomain } from '../../generic/metadata.ts';
import type { ClusterReader } from '../../generic/strategy.ts';
import { validateIngressSpec, validateIngressStatus } from './validation.ts';

/** The annotation that names the class, the predecessor of `spec.ingressClassName`. */
const ingressClassAnnotation = 'kubernetes.io/ingress.class';

const isDefaultAnnotation = 'ingressclass.kubernetes.io/is-default-class';

/** The rules of Ingresses (`pkg/registry/networking/ingress/strategy.go`, admission DefaultIngressClass). */
export const ingressStrategy = genericStrategy<Ingress>({
  ...namespacedSubdomain,
  hasStatus: true,
  generationChanges: (ingress, old) => !jsonEqual(withRules(ingress.spec), withRules(old.spec)),
  setDefaults(ingress: Partial<Pick<Ingress, 'spec' | 'status'>>) {
    ingress.spec ??= {};
    ingress.status ??= {};
  },
  admitCreate({ metadata, spec }, { cluster }) {
    if (spec.ingressClassName !== undefined || namedClass({ metadata }) !== undefined) return;
    const name = defaultClass(cluster);
    if (name !== undefined) spec.ingressClassName = name;
  },
  validateCreate({ metadata, spec }) {
    const errors = validateIngressSpec(spec);
    const named = namedClass({ metadata });
    const { ingressClassName } = spec;
    if (named !== undefined && ingressClassName !== undefined && named !== ingressClassName) {
      const detail = 'must match `ingressClassName` when both are specified';
      errors.push(invalid(`annotations.${ingressClassAnnotation}`, named, detail));
    }
    return errors;
  },
  validateUpdate: ({ metadata, spec }, old) => [
    ...validateObjectMeta(metadata, namespacedSubdomain),
    ...validateIngressSpec(spec, old.spec),
  ],
  validateStatus: validateIngressStatus,
  warningsOnCreate({ metadata, spec }) {
    if (namedClass({ metadata }) === undefined || spec.ingressClassName !== undefined) return [];
    return [
      `annotation "${ingressClassAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`,
    ];
  },
});

/** An empty list of rules, which errors print unlike an absent one, is dropped. */
function withRules({ rules = [], ...rest }: IngressSpec): IngressSpec {
  return { ...rest, rules };
}

function namedClass({ metadata: { annotations = {} } }: KubeObject): string | undefined {
  return Object.hasOwn(annotations, ingressClassAnnotation) ? annotations[ingressClassAnnotation] : undefined;
}

/** The newest of the default classes, the first by name among equals. */
function defaultClass(cluster: ClusterReader): string | undefined {
  return cluster
    .list('networking.k8s.io', 'ingressclasses')
    .filter(({ metadata }) => metadata.annotations?.[isDefaultAnnotation] === 'true')
    .map(({ metadata: { name = '', creationTimestamp = '' } }) => ({ name, creationTimestamp }))
    .sort((a, b) => compareText(b.creationTimestamp, a.creationTimestamp) || compareText(a.name, b.name))[0]
    ?.name;
}
