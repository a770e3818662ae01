package sa

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// Join makes a port a member of the multicast group member.MGID, in the way that
// member.JoinState says, on top of the ways in which it is one already (IBA
// 15.2.5.17). Without PortGID it is the own port, without JoinState it is a full
// member. What the group must be like is in further components of member, named by
// components; MTU, Rate and PacketLifeTime count with their selectors only:
//
//	member, err := admin.Join(ctx, mad.MCMemberRecord{MGID: gid, QKey: 0x0b1b}, "Q_Key")
//
// It gives the group's values, with all of the port's JoinState. Errors: a
// *StatusError, with StatusSAInsufficientComponents or StatusSAReqInvalid if there
// is no such group, which [Client.JoinOrCreate] makes.
func (c *Client) Join(ctx context.Context, member mad.MCMemberRecord, components ...string) (mad.MCMemberRecord, error) {
	if err := c.complete(&member); err != nil {
		return mad.MCMemberRecord{}, err
	}
	q := Match(member, append([]string{"MGID", "PortGID", "JoinState"}, components...)...)
	rec, err := Set(ctx, c, q)
	if err != nil {
		return rec, fmt.Errorf("join %v to the multicast group %v as %v: %w", member.PortGID, member.MGID, member.JoinState, err)
	}
	return rec, nil
}

// JoinOrCreate joins a group as [Client.Join] does, and makes it if there is none,
// for which member has to be a full member, or a send-only one. The components
// Q_Key, P_Key, TClass, SL and FlowLabel count, too: a new group needs them, and one
// that is there must have them (IBA o15-0.2.3). A zero MGID asks for a new one; if
// the answer gets lost and the request is sent again, so is the group made again.
func (c *Client) JoinOrCreate(ctx context.Context, member mad.MCMemberRecord, components ...string) (mad.MCMemberRecord, error) {
	return c.Join(ctx, member, append([]string{"Q_Key", "P_Key", "TClass", "SL", "FlowLabel"}, components...)...)
}

// Leave ends the ways of being a member of the group member.MGID that
// member.JoinState has; what [Client.Join] gives ends them all. PortGID and
// JoinState may be zero as there. When the last full member leaves, the group ends.
// Errors: a *StatusError, with StatusSAReqInvalid if the port is no such member.
func (c *Client) Leave(ctx context.Context, member mad.MCMemberRecord) error {
	if err := c.complete(&member); err != nil {
		return err
	}
	_, err := Delete(ctx, c, Match(member, "MGID", "PortGID", "JoinState"))
	if status := (*StatusError)(nil); errors.As(err, &status) && status.Status == mad.StatusSAReqInvalid && status.Tries > 1 {
		// The port may have left at a try whose answer got lost.
		if _, gone := Get(ctx, c, Match(member, "MGID", "PortGID")); errors.Is(gone, ErrNoRecords) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("take %v as %v from the multicast group %v: %w", member.PortGID, member.JoinState, member.MGID, err)
	}
	return nil
}

// complete fills in who is a member and how.
func (c *Client) complete(member *mad.MCMemberRecord) (err error) {
	if member.JoinState == 0 {
		member.JoinState = mad.JoinFullMember
	}
	if member.PortGID.IsZero() {
		member.PortGID, err = c.ownGID()
	}
	return err
}
