import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { unauthorized } from '../../objects/status-errors.ts';
import type { UserInfo } from '../http/exchange.ts';
import { withAuthenticatedGroup } from './users.ts';

/** A connection's certificate never changes, and parsing it costs more than the rest of a small request. */
const users = new WeakMap<Socket, UserInfo | 'none' | 'refused'>();

/**
 * The user of a client certificate: CN is the name, every O a group (apiserver `request/x509`). Undefined when
 * the client showed none.
 *
 * @throws {StatusError} 401 for a certificate that the authority did not sign, or that has no CN.
 */
export function clientCertificateUser(socket: Socket): UserInfo | undefined {
  let user = users.get(socket);
  if (user === undefined) {
    user = readUser(socket);
    users.set(socket, user);
  }
  if (user === 'refused') throw unauthorized();
  return user === 'none' ? undefined : user;
}

function readUser(socket: Socket): UserInfo | 'none' | 'refused' {
  if (!(socket instanceof TLSSocket)) return 'none';
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return 'none';
  if (!socket.authorized) return 'refused';
  const subject = socket.getPeerCertificate().subject;
  const name = listOf(subject.CN).at(-1) ?? '';
  if (name === '') return 'refused';
  return withAuthenticatedGroup({ name, uid: '', groups: listOf(subject.O), extra: {} });
}

/** Node gives one attribute as a string, several of one type as a list. */
function listOf(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}
