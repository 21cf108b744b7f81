package look_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/peltonq/pelton/admin/internal/look"
)

// One who floods has half of the slots at most, and of those who wait whoever has the fewest comes first, then who came first.
func TestSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := look.NewSlots()
		type served struct {
			user  int64
			leave func()
		}
		news, leaves := make(chan served, 100), map[int64][]func(){}
		ask := func(ctx context.Context, user int64, times int) {
			for range times {
				go func() {
					if leave, err := s.Take(ctx, user); err == nil {
						news <- served{user, leave}
					}
				}()
				synctest.Wait()
			}
		}
		want := func(users ...int64) {
			t.Helper()
			synctest.Wait()
			var got []int64
			for len(news) > 0 {
				one := <-news
				got = append(got, one.user)
				leaves[one.user] = append(leaves[one.user], one.leave)
			}
			slices.Sort(got)
			if !slices.Equal(got, users) {
				t.Fatalf("served were %v, want %v", got, users)
			}
		}
		leave := func(user int64) {
			leaves[user][0]()
			leaves[user] = leaves[user][1:]
		}
		const flood, second, third, fourth = 1, 2, 3, 4
		flooding, giveUp := context.WithCancel(t.Context())
		ask(flooding, flood, 40)
		want(flood, flood, flood)
		ask(t.Context(), second, 4)
		want(second, second, second)
		ask(t.Context(), third, 2)
		ask(t.Context(), fourth, 1)
		want()
		leave(flood)
		want(third)
		leave(second)
		want(fourth) // the third has one already
		leave(fourth)
		want(third)
		leave(third)
		want(flood) // who has two, as the second, but came before
		giveUp()
		synctest.Wait()
		leave(flood)
		want(second)
		leave(third)
		leave(flood)
		leave(flood)
		want() // nobody waits any more
		ask(t.Context(), look.NoUser, 5)
		want(look.NoUser, look.NoUser, look.NoUser) // beside the second's three: all that there are
		for range 3 {
			leave(second)
		}
		want(look.NoUser, look.NoUser)
		for range 5 {
			leave(look.NoUser)
		}
		ask(t.Context(), flood, 4)
		want(flood, flood, flood)
		for range 3 {
			leave(flood)
		}
		want(flood)
		leave(flood)
	})
}
