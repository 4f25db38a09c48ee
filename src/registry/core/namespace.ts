import type { Namespace } from '../../objects/types/core.generated.ts';
import { type FieldError, invalid } from '../validation/field-errors.ts';
import { genericStrategy, restoreSpec } from '../generic/generic.ts';
import { validateObjectMetaUpdate } from '../generic/metadata.ts';
import { isQualifiedName, nameIsDNSLabel } from '../../objects/names.ts';
import type { Strategy, SubresourceStrategy } from '../generic/strategy.ts';

const nameLabel = 'kubernetes.io/metadata.name';
/** The finalizer that the namespace controller removes through `/finalize` once the namespace is empty. */
const kubernetesFinalizer = 'kubernetes';
const standardFinalizers = new Set([kubernetesFinalizer, 'orphan', 'foregroundDeletion']);

/** `PUT /finalize` writes spec.finalizers and nothing else (`namespaceFinalizeStrategy`). */
const finalize: SubresourceStrategy<Namespace> = {
  resetFields: [['status']],
  prepareForUpdate(object, old) {
    object.status = old.status;
  },
  validateUpdate: (object, old) => [
    ...validateObjectMetaUpdate(object.metadata, old.metadata),
    ...(object.spec.finalizers ?? []).flatMap((finalizer, i) =>
      validateFinalizer(finalizer, `spec.finalizers[${i}]`),
    ),
  ],
};

const rules = genericStrategy<Namespace>({
  namespaced: false,
  nameRule: nameIsDNSLabel,
  hasStatus: true,
  deleteReturnsObject: true,
  setDefaults(namespace) {
    const { status } = present(namespace);
    status.phase ??= 'Active';
    labelName(namespace);
  },
  prepareForCreate(namespace) {
    labelName(namespace);
    namespace.status = { phase: 'Active' };
    const finalizers = (namespace.spec.finalizers ??= []);
    if (!finalizers.includes(kubernetesFinalizer)) finalizers.push(kubernetesFinalizer);
  },
  prepareForUpdate: restoreSpec,
  validateCreate: validateFinalizers,
  repeatsCreate: 'before',
  validateStatus(namespace) {
    const phase = namespace.status.phase ?? '';
    const deleted = namespace.metadata.deletionTimestamp !== undefined;
    const wanted = deleted ? 'Terminating' : 'Active';
    if (phase === wanted) return [];
    const when = deleted ? 'is not empty' : 'is empty';
    return [invalid('status.Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)];
  },
  fields: (namespace) => ({ 'status.phase': present(namespace).status.phase ?? '' }),
  subresources: new Map([['finalize', finalize]]),
});

/** Adds empty parts that decoding leaves out. */
function present(namespace: Partial<Pick<Namespace, 'spec' | 'status'>>): Pick<Namespace, 'spec' | 'status'> {
  namespace.spec ??= {};
  namespace.status ??= {};
  return { spec: namespace.spec, status: namespace.status };
}

function labelName({ metadata }: Namespace): void {
  if (metadata.name === undefined || metadata.name === '') return;
  metadata.labels ??= {};
  metadata.labels[nameLabel] = metadata.name;
}

function validateFinalizers(namespace: Namespace): FieldError[] {
  return (namespace.spec.finalizers ?? []).flatMap((finalizer) =>
    validateFinalizer(finalizer, 'spec.finalizers'),
  );
}

function validateFinalizer(finalizer: string, path: string): FieldError[] {
  const errors = isQualifiedName(finalizer).map((message) => invalid(path, finalizer, message));
  if (!finalizer.includes('/') && !standardFinalizers.has(finalizer)) {
    const detail = 'name is neither a standard finalizer name nor is it fully qualified';
    errors.push(invalid(path, finalizer, detail));
  }
  return errors;
}

/**
 * The rules of Namespaces (`pkg/registry/core/namespace/strategy.go`): a delete makes it Terminating, and it is removed
 * with its last finalizer.
 */
export const namespaceStrategy: Strategy<Namespace> = {
  ...rules,
  termination: {
    mark: (namespace) => {
      namespace.status = { ...namespace.status, phase: 'Terminating' };
    },
    finished: (namespace) => (namespace.spec.finalizers ?? []).length === 0,
    takesPropagation: true,
  },
};
