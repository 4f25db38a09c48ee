/** Tables of CertificateSigningRequests and APIServices. */
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import { humanDuration } from './age.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

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

/** The decision, and whether the certificate was issued. A denial has precedence over an approval. */
function stateOf(request: object): string {
  const types = listAt(request, 'status', 'conditions').map((condition) => textAt(condition, 'type'));
  const decision = types.includes('Denied') ? 'Denied' : types.includes('Approved') ? 'Approved' : 'Pending';
  const failed = types.includes('Failed') ? ',Failed' : '';
  return `${decision}${failed}${textAt(request, 'status', 'certificate') === '' ? '' : ',Issued'}`;
}

export const apiServicesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Service', 'The Service that answers, Local for this server.'),
    column('Available', 'Whether the group version is served.'),
    ageColumn,
  ],
  cells(object, now) {
    const service = at(object, 'spec', 'service');
    const available = listAt(object, 'status', 'conditions').find(
      (condition) => textAt(condition, 'type') === 'Available',
    );
    const status = textAt(available, 'status');
    return [
      nameOf(object),
      service === undefined ? 'Local' : `${textAt(service, 'namespace')}/${textAt(service, 'name')}`,
      available === undefined
        ? 'Unknown'
        : status === 'True'
          ? status
          : `${status} (${textAt(available, 'reason')})`,
      ageOf(object, now),
    ];
  },
};
