/**
 * The error of kube-apiserver's storage for a failed precondition (`storage.Preconditions.Check`): passed to clients
 * unchanged.
 *
 * @param key where kube-apiserver keeps the object in etcd.
 * @param found what the stored object has, "" where there is none.
 */
export function preconditionFailed(
  key: string,
  field: 'UID' | 'ResourceVersion',
  wanted: string,
  found = '',
): string {
  return (
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, ` +
    `AdditionalErrorMsg: Precondition failed: ${field} in precondition: ${wanted}, ${field} in object meta: ${found}`
  );
}
