import { listAt, numberAt, recordAt, textAt } from '../../objects/json.ts';
import {
  ageColumn,
  ageOf,
  column,
  labelsText,
  humanDuration,
  nameColumn,
  nameOf,
  type TableConverter,
} from './table.ts';

/** Tables of certificates.k8s.io. */

export const certificateSigningRequestsTable: TableConverter = {
  columns: [
    nameColumn,
    ageColumn,
    column('SignerName', 'The requested signer.'),
    column('Requestor', 'The user that created the request.'),
    column('RequestedDuration', 'The requested validity of the certificate.'),
    column('Condition', 'Whether it was approved, denied, and issued.'),
  ],
  cells(object, now) {
    const seconds = numberAt(object, 'spec', 'expirationSeconds');
    return [
      nameOf(object),
      ageOf(object, now),
      textAt(object, 'spec', 'signerName') || '<none>',
      textAt(object, 'spec', 'username'),
      seconds === 0 ? '<none>' : humanDuration(seconds * 1000),
      stateOf(object),
    ];
  },
};

export const clusterTrustBundlesTable: TableConverter = {
  columns: [nameColumn, column('SignerName', 'Whose certificates the bundle verifies.')],
  cells: (object) => [nameOf(object), textAt(object, 'spec', 'signerName') || '<none>'],
};

export const podCertificateRequestsTable: TableConverter = {
  columns: [
    nameColumn,
    column('PodName', 'The Pod that the certificate is for.'),
    column('ServiceAccountName', 'The service account of the Pod.'),
    column('NodeName', 'The node that the Pod runs on.'),
    column('SignerName', 'The requested signer.'),
    column('State', 'Pending, Issued, Denied or Failed.'),
    column('UnverifiedUserAnnotations', 'What the Pod says to the signer, unverified.'),
  ],
  cells: (object) => [
    nameOf(object),
    ...['podName', 'serviceAccountName', 'nodeName', 'signerName'].map((member) =>
      textAt(object, 'spec', member),
    ),
    listAt(object, 'status', 'conditions')
      .map((condition) => textAt(condition, 'type'))
      .findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending',
    labelsText(recordAt(object, 'spec', 'unverifiedUserAnnotations')),
  ],
};

/** The decision, and whether the certificate was issued. A denial has precedence over an approval. */
function stateOf(request: object): string {
  const types = listAt(request, 'status', 'conditions').map((condition) => textAt(condition, 'type'));
  const decision = types.includes('Denied') ? 'Denied' : types.includes('Approved') ? 'Approved' : 'Pending';
  const failed = types.includes('Failed') ? ',Failed' : '';
  return `${decision}${failed}${textAt(request, 'status', 'certificate') === '' ? '' : ',Issued'}`;
}
