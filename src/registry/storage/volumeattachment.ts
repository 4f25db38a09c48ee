import type { VolumeAttachment, VolumeError } from '../../objects/types/storage.generated.ts';
import { validateCsiDriverName } from './csidriver.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import { genericStrategy, resetMetaForStatus, restoreSpec, addEmptyParts } from '../generic/generic.ts';
import { validateDeclaredImmutable } from '../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';

const maxMetadata = 256 * 1024;
const maxMessage = 1024;
const oneSource = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

const rules = genericStrategy<VolumeAttachment>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  allowUnconditionalUpdate: false,
  hasStatus: true,
  setDefaults: addEmptyParts,
  validateCreate: ({ spec, status }) => [...validateSpec(spec), ...validateStatus(status)],
});

/** The rules of VolumeAttachments (`apis/storage/validation` ValidateVolumeAttachment). */
export const volumeAttachmentStrategy: Strategy<VolumeAttachment> = {
  ...rules,
  validateCreate: (attachment, context) => [
    ...rules.validateCreate(attachment, context),
    ...validateNames(attachment.spec),
  ],
  validateUpdate: (attachment, old, context) => [
    ...rules.validateCreate(attachment, context),
    ...validateSameSpec(attachment, old),
  ],
  status: {
    resetFields: [['spec'], ['metadata']],
    prepareForUpdate(attachment, old) {
      restoreSpec(attachment, old);
      resetMetaForStatus(attachment, old);
    },
    validateUpdate: (attachment, old, context) => [
      ...rules.validateCreate(attachment, context),
      ...validateSameSpec(attachment, old),
    ],
  },
};

function validateSpec({ attacher, source, nodeName }: VolumeAttachment['spec']): FieldError[] {
  const errors = attacher === '' ? [declarative(required('spec.attacher'))] : [];
  const { persistentVolumeName: name, inlineVolumeSpec: inline } = source;
  if (name === undefined && inline === undefined) errors.push(required('spec.source', oneSource));
  else if (name !== undefined && inline !== undefined) errors.push(forbiddenField('spec.source', oneSource));
  else if (name === '') {
    const detail = 'must specify non empty persistentVolumeName';
    errors.push(required('spec.source.persistentVolumeName', detail));
  }
  for (const message of nameIsDNSSubdomain(nodeName, false)) {
    errors.push(invalid('spec.nodeName', nodeName, message));
  }
  return errors;
}

/** The rules of new objects only (ValidateVolumeAttachmentV1). */
function validateNames({ attacher, source }: VolumeAttachment['spec']): FieldError[] {
  const errors = validateCsiDriverName(attacher, 'spec.attacher').map(declarative);
  const { persistentVolumeName: name } = source;
  if (name === undefined) return errors;
  for (const message of nameIsDNSSubdomain(name, false)) {
    errors.push(invalid('spec.source.persistentVolumeName', name, message));
  }
  return errors;
}

function validateStatus({
  attachmentMetadata = {},
  attachError,
  detachError,
}: VolumeAttachment['status']): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(attachmentMetadata)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxMetadata) errors.push(tooLong('status.attachmentMetadata', maxMetadata));
  return [
    ...errors,
    ...validateError(attachError, 'status.attachError'),
    ...validateError(detachError, 'status.detachError'),
  ];
}

function validateError(error: VolumeError | undefined, path: string): FieldError[] {
  const { message = '', errorCode = 0 } = error ?? {};
  const errors: FieldError[] = [];
  if (Buffer.byteLength(message) > maxMessage) errors.push(tooLong(`${path}.message`, maxMessage));
  if (errorCode < 0) {
    errors.push(invalid(`${path}.errorCode`, errorCode, 'must be between 0 and 2147483647, inclusive'));
  }
  return errors;
}

function validateSameSpec({ spec }: VolumeAttachment, old: VolumeAttachment): FieldError[] {
  return validateDeclaredImmutable(spec, old.spec, 'spec');
}
